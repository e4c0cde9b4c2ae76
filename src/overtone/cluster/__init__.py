"""Ray: actors on the nodes of a cluster hold models, and tasks compute builds and slow metrics.

The driver, which is the command itself, keeps the one store, the limits, the budgets and the retries. Only files of
this folder import Ray, and only once they are used.
"""

"""`overtone talk`: speak with a model in a browser. Each conversation is stored as a run while it is held.

conversations  ask the model about each utterance, and store clips, replies, timings and ratings
server         the page and its API
pages/         what the browser loads
"""

"""The arena: replies of several runs to the same clips, compared two at a time by judges and people.

`contestants` reads the replies to clips that all runs share. `pairing` draws pairs of replies. `ballots` reads people's
votes, and `rounds` asks judges. `vote_store` stores pairs and votes, and `standings` ranks the runs. `opinions` and
`preferences` make training pairs.
"""

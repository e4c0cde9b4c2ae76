"""The arena: replies of several runs to the same clips, compared two at a time by judges and people.

`contestants` reads the replies that the runs share, `pairing` draws pairs of them, `ballots` reads people's votes,
`rounds` asks judges, `vote_store` stores pairs and votes, `standings` ranks; `opinions` and `preferences` make training
pairs.
"""

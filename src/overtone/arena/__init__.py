"""The arena: replies of several runs to the same clips, compared two at a time by judges and people.

`contestants` reads what the runs share, `pairing` draws who meets whom, `ballots` takes people's votes in, `rounds`
asks judges, `vote_store` keeps pairs and votes, `standings` ranks; `opinions` and `preferences` make training pairs.
The arena joins runs, judges and statistics, and no other room needs it.
"""

"""The arena: replies of several runs to the same clips, compared two at a time by judges and people.

`field` reads what the runs share, `pairs` draws who meets whom, `ballots` takes people's votes in, `play` asks judges,
`table` keeps pairs and votes, `standings` ranks; `opinions` and `preferences` make training pairs of it.
One room of its own: it joins runs, judges and statistics, and no other room needs it.
"""

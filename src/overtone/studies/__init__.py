"""Studies: experiments that are fixed in a file before they run, and the analysis of their results."""

"""Tables and drawings as plain values, before anything writes them to a terminal, a page or a file."""

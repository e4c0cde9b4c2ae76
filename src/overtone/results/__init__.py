"""Results of a run: loaded, summarised, compared and checked. This room reads runs and never writes them."""

"""What a run's stored scores say: a run is loaded, summed up, compared and checked. Reads runs, never writes them."""

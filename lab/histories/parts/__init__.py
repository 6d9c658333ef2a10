"""Who takes part in the long histories, by kind."""

"""Learning components: coordinate ascent on the evidence lower bound, tempered or not; moves."""

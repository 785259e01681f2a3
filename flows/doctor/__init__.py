"""`nest doctor`: what would stop a run, found before it starts; each finding with its mend."""

"""From network output to the map that boxes are read from: mapper, colour mean, focus."""

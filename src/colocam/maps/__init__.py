"""From network output to the maps that boxes are read from: colour mean, focus, and maps of whole data sets."""

"""Heat-maps, boxes and labels drawn on frames."""

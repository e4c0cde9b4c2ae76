"""The page of `overtone talk`: HTML, style and an ES module, without a build step."""

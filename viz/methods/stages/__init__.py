"""What the methods draw on the stage: a file for each method whose idea takes more than text and tree."""

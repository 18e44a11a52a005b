"""The methods' own stages: a file for each method whose idea text and tree do not show."""

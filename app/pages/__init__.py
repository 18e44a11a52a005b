"""The pages, one file each, and the forms that they share."""

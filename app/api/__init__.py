"""What programs call instead of the page: `decode` in three forms and OpenAI's endpoints, with the page's limits."""

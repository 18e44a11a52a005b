"""The API for programs: `decode` in three forms and OpenAI's endpoints, with the page's limits."""

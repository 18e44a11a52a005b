"""What programs call instead of the page: `decode`, OpenAI's endpoints and an MCP tool, with the page's limits."""

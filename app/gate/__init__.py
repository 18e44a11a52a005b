"""What stands between the network and Gradio: nothing gets in but what the page and its scripts send."""

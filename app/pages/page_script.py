"""Calls from the page's components into the page's own script."""


def once_loaded(call: str) -> str:
    """Return a component's script that makes a call once the page's script has run.

    Gradio inserts both, and neither waits for the other: on a slow network the component comes first.
    """
    return (
        f"const call = () => {{ {call} }}; "
        "if (globalThis.SpecscopeApp) call(); else document.addEventListener('specscope', call, { once: true });"
    )

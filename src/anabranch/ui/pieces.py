"""Small building blocks of all panels: buttons, cards, icons.

Invariant: everything that can be clicked is a button with a name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from nicegui import ui
from nicegui.element import Element

from anabranch.ui.values import sendable

_STROKES = {
    "theme": '<circle cx="8" cy="8" r="5.6"/><path d="M8 2.4a5.6 5.6 0 0 1 0 11.2z" fill="currentColor"/>',
    "book": (
        '<path d="M2.5 3.2h4.2c.8 0 1.3.5 1.3 1.2v8.8c0-.7-.6-1.1-1.3-1.1H2.5z"/>'
        '<path d="M13.5 3.2H9.3c-.8 0-1.3.5-1.3 1.2v8.8c0-.7.6-1.1 1.3-1.1h4.2z"/>'
    ),
    "close": '<path d="M3.5 3.5l9 9M12.5 3.5l-9 9"/>',
    "ask": '<circle cx="8" cy="8" r="6.2"/><path d="M6.2 6.3a1.9 1.9 0 1 1 2.6 1.8c-.5.2-.8.6-.8 1.2M8 11.4v.1"/>',
    "image": '<rect x="2" y="3" width="12" height="10" rx="1.5"/><path d="M2.5 11l3.4-3.4 2.6 2.6 2-2 3 3"/>',
    "sheet": '<rect x="2" y="2.6" width="12" height="10.8" rx="1.5"/><path d="M2 6.4h12M2 9.9h12M6.4 6.4v7"/>',
    "plus": '<path d="M8 3v10M3 8h10"/>',
    "again": '<path d="M13 8a5 5 0 1 1-1.6-3.7M13 2.4v2.9h-2.9"/>',
}
_FILLED = {
    "play": '<path d="M4 2.6v10.8a.7.7 0 0 0 1 .6l8.4-5.4a.7.7 0 0 0 0-1.2L5 2a.7.7 0 0 0-1 .6z"/>',
    "pause": (
        '<rect x="3" y="2.4" width="3.6" height="11.2" rx="1"/><rect x="9.4" y="2.4" width="3.6" height="11.2" rx="1"/>'
    ),
    "stop": '<rect x="3" y="3" width="10" height="10" rx="1.6"/>',
    "next": '<path d="M5.4 2.8l5.6 5.2-5.6 5.2z"/>',
    "previous": '<path d="M10.6 2.8L5 8l5.6 5.2z"/>',
    "first": '<path d="M12 2.8L6.4 8l5.6 5.2zM3.4 2.8h1.8v10.4H3.4z"/>',
    "last": '<path d="M4 2.8L9.6 8 4 13.2zM10.8 2.8h1.8v10.4h-1.8z"/>',
}
LOGO = (
    '<svg viewBox="0 0 28 28" aria-hidden="true"><path d="M3 8c6 0 6 6 11 6s6-6 11-6"/>'
    '<path d="M3 14h22"/><path d="M3 20c6 0 6-6 11-6s6 6 11 6"/></svg>'
)
ClickHandler = Callable[..., Awaitable[None] | None]


def picture(name: str) -> str:
    if name in _FILLED:
        return f'<svg viewBox="0 0 16 16" aria-hidden="true">{_FILLED[name]}</svg>'
    return f'<svg class="stroke" viewBox="0 0 16 16" aria-hidden="true">{_STROKES[name]}</svg>'


def raw(markup: str) -> Element:
    """Insert trusted markup, never text of a user."""
    return ui.html(markup, sanitize=False).style("display: contents")


def tag(name: str, classes: str = "", **attributes: str) -> Element:
    element = ui.element(name).classes(classes)
    for key, value in attributes.items():
        element.props[key.rstrip("_").replace("_", "-")] = value
    return element


def words(name: str, text: str, classes: str = "", **attributes: str) -> Element:
    """Create a tag that holds text."""
    element = tag(name, classes, **attributes)
    say(element, text)
    return element


def say(element: Element, text: str) -> None:
    """Set an element's text if it differs."""
    text = sendable(text)
    if element._text != text:
        element._text = text
        element.update()


def button(
    text: str, on_click: ClickHandler | None, *, icon: str = "", classes: str = "", label: str = "", hint: str = ""
) -> Element:
    """Create a button; without a handler it submits its form, as the Enter key does."""
    kind = "submit" if on_click is None else "button"
    element = tag("button", f"ab-button {classes}" + (" icon" if not text else ""), type=kind)
    if label or not text:
        element.props["aria-label"] = label or hint
    if hint or not text:
        element.props["title"] = hint or label
    with element:
        if icon:
            raw(picture(icon))
        if text:
            words("span", text)
    if on_click is not None:
        element.on("click", lambda _: on_click())
    return element


def arrows(element: Element, role: str) -> None:
    """Let the arrow keys, Home and End move among the parts of a role; a tab that is reached is chosen."""
    chooses = "to.click();" if role == "tab" else ""
    element.on(
        "keydown",
        js_handler=f"""(event) => {{
          const all = [...event.currentTarget.querySelectorAll("[role={role}]")].filter((one) => one.offsetParent);
          const at = all.indexOf(document.activeElement), last = all.length - 1;
          const on = at + 1, back = at - 1;
          const steps = {{ArrowRight: on, ArrowDown: on, ArrowLeft: back, ArrowUp: back, Home: 0, End: last}};
          if (!(event.key in steps) || !all.length) return;
          event.preventDefault();
          event.stopPropagation();
          const to = all[(steps[event.key] + all.length) % all.length];
          to.focus();
          {chooses}
        }}""",
    )


def focused_menu(menu: ui.menu) -> None:
    """Focus a menu's first entry when it opens, and let the arrow keys reach the entries."""
    menu.on("show", js_handler="() => document.querySelector('.q-menu [role=menuitem]')?.focus()")


def returning(dialog: ui.dialog) -> None:
    """Return the focus after a dialog to its former element; to the table if the focused row is gone."""
    dialog.on(
        "hide",
        js_handler="""() => setTimeout(() => {
          if (document.activeElement === document.body) document.querySelector("#panel-answers .ab-table-box")?.focus();
        }, 50)""",
    )


def enabled(element: Element, yes: bool) -> None:
    """Enable or disable a button."""
    if bool(element.props.get("disabled")) == yes:
        if yes:
            del element.props["disabled"]
        else:
            element.props["disabled"] = True
        element.update()


def shown(element: Element, yes: bool) -> None:
    element.classes(remove="ab-hidden") if yes else element.classes(add="ab-hidden")


@contextmanager
def card(title: str, classes: str = "") -> Iterator[tuple[Element, Element]]:
    """Create a card with a head; elements built inside the `with` block are below the head. Yields the card and the
    head."""
    outer = tag("section", f"ab-card {classes}", aria_label=title)
    with outer:
        head = tag("div", "ab-card-head")
        with head:
            words("h2", title)
        yield outer, head


def failed(error: BaseException) -> None:
    """Show a failure with the message of the error."""
    ui.notify(
        sendable(str(error)) or type(error).__name__,
        type="negative",
        position="top",
        multi_line=True,
        close_button="Close",
    )


def argument(event: Any) -> Any:
    """Return the single argument of a component's event."""
    return event.args[0] if isinstance(event.args, list) and len(event.args) == 1 else event.args

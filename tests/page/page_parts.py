"""Parts of the page that tests look for."""

from __future__ import annotations

from playwright.sync_api import Locator, Page


def rows(page: Page, grid: str) -> Locator:
    """The rows of a table below its head."""
    return page.get_by_role("grid", name=grid).get_by_role("row").filter(has=page.get_by_role("gridcell"))


def selected_row(page: Page) -> Locator:
    return page.locator("[role=row][aria-selected=true]").first


def tab(page: Page, name: str) -> Locator:
    return page.get_by_role("tab", name=name)


def heading(page: Page) -> Locator:
    return page.get_by_role("heading", level=1)

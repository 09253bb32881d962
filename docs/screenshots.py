"""Take the screenshots of the documents: ``make demo``, then ``make screenshots``."""

import json
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).parent
SIZES = {"": (1000, 760), "-narrow": (390, 844)}
# The row whose similar articles are shown; it is in English.
ROW = 3


def main(sidecar: str) -> None:
    """Photograph the list by count, and who else published an article of it.

    Args:
        sidecar: Address of the sidecar that shows the pages.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--headless", "--no-sandbox"]
        )
        for suffix, (width, height) in SIZES.items():
            page = browser.new_page(viewport={"width": width, "height": height})
            page.goto(f"{sidecar}/pages/?sort=similar-desc")
            page.screenshot(path=FOLDER / f"list{suffix}.png")
            page.locator(".badge").nth(ROW).click()
            page.screenshot(path=FOLDER / f"article{suffix}.png")
        browser.close()


if __name__ == "__main__":
    # The file in which the demo's sidecar gives its address.
    main(json.loads(Path(sys.argv[1]).read_text())["url"])

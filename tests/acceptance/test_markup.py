"""What a browser shows of odd markup is compared, see `visible_text`."""

import re
from random import Random

from playwright.sync_api import Browser

from esdedup.text.normalise import visible_text

PARTS = [
    *(
        "<!--",
        "-->",
        "--!>",
        "<!-->",
        "<!--->",
        "->",
        "--",
        "<!",
        "<?",
        "</",
        "/>",
        ">",
        "<",
        "'",
        '"',
        "=",
        " ",
        "\n",
    ),
    *(
        "<a title=",
        "<a title='",
        '<b x="',
        "='",
        "<p>",
        "</p>",
        "<x-y a=",
        "<span/",
        "</span\n",
        "<!doctype html>",
    ),
    *("<script>", "</script>", "<script ", "</script ", "<style>", "</style>", "<style/>", "</style x='>'>"),
    *("<title>", "</title>", "<textarea>", "</textarea>", "<xmp>", "</xmp>", "<noscript>", "</noscript>"),
    *(
        "<iframe>",
        "</iframe>",
        "<noembed>",
        "</noembed>",
        "<plaintext>",
        "<\u017fcript>",
        "</\u017fcript>",
        "</3",
    ),
    *(
        "<svg>",
        "<svg><text>",
        "</svg>",
        "<desc>",
        "</desc>",
        "<math>",
        "</math>",
        "<![CDATA[",
        "]]>",
        "<select>",
    ),
    *("<option>", "</select>", "<table>", "<td>", "<template>"),
]
# Text counts as shown if it takes room, or is in an element that shows its text in its own way.
SHOWN = """documents => documents.map(html => {
  const frame = document.body.appendChild(document.createElement("iframe"))
  const inner = frame.contentDocument
  inner.open(); inner.write(html); inner.close()
  const walker = inner.createTreeWalker(inner, NodeFilter.SHOW_TEXT), range = inner.createRange(), shown = []
  const hiding = "template, script, style, noscript, iframe, noembed, noframes"
  while (walker.nextNode()) {
    range.selectNodeContents(walker.currentNode)
    const parent = walker.currentNode.parentElement
    const isWidget = parent && parent.closest("textarea, option") && !parent.closest(hiding)
    if (isWidget || [...range.getClientRects()].some(each => each.width)) shown.push(walker.currentNode.data)
  }
  frame.remove()
  return shown.join(" ")
})"""


def test_every_word_that_a_browser_shows_is_compared(browser: Browser) -> None:
    random = Random(13)
    documents = []
    for _ in range(200):
        # Few kinds of parts in a document meet each other more often.
        parts = random.sample(PARTS, random.choice([6, 12, len(PARTS)]))
        drawn = random.choices(parts, k=random.randint(2, 14))
        documents.append("<body>" + "".join(f"{part}word{at}." for at, part in enumerate(drawn)))
    page = browser.new_page()
    shown = page.evaluate(SHOWN, documents)
    words = re.compile(r"word[0-9]+\.")
    for document, text in zip(documents, shown, strict=True):
        assert set(words.findall(text)) <= set(words.findall(visible_text(document))), document
    assert sum(len(words.findall(text)) for text in shown) > 500

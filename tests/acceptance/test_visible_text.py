"""The visible text of markup, compared with the text that a browser shows with scripts disabled."""

import re

from playwright.sync_api import Browser

from esdedup.text.parsed import visible_text

SAME = [
    "<select></select><script>var a = '<p>b</p>'</script><p>c",
    "<svg><title>t</title><style>.a { b: c }</style><text>a</text></svg><script>'<p>'</script><p>c",
    "<svg><title>t</title><desc>d</desc><text>a</text><foreignObject><p>fo</p></foreignObject></svg>c",
    "<svg><text><![CDATA[b]]></text></svg><![CDATA[c]]><p>d",
    "<svg><g><path d='M 0 0'/></g></svg><style>p {}</style><p>after",
    "<p aria-hidden='true'>an icon</p>c",
    "<p hidden>a</p>b<p>c<p hidden='until-found'>d</p>e",
    "<div style='display:none'>a<p>b</div>c<div style='color: red; DISPLAY : None !important'>d</div>",
    "<div style='display:none;display:block'>a</div><div style='visibility: hidden'>b</div>c",
    "<div style='display:/* a */none'>a</div><div style='display:&#110;one'>b</div>c",
    "<p hidden style='display:block'>a</p><p style='color:red' style='display:none'>b</p>c",
    "<div style='visibility:collapse'>a</div><div style='visibility:visible'>b</div>c",
    "<form hidden>a</form>b<form>c <form style='display:none'>d</form>e <form style='display:none'>f</form>g",
    "<table><form hidden><tr><td>a</td></tr></form></table><div><form></div><form hidden>b</form> c",
    "<template><p>a</p></template>c",
    "<dialog>a</dialog><dialog open>b</dialog><div popover>c</div>d",
    "<video>a</video><audio>b</audio><meter>c</meter><progress>d</progress><datalist><option>e</datalist>f",
    "<ruby>a<rp>(</rp></ruby>c",
    "<!-- a --><!--> b<!-- c -- > --!>d<![CDATA[e]]>f<?php echo 'a' ?>g",
    "<p>a&ampb&copy2&notit;&amp;lt;&#150;&#x4e2d;&nosuch;",
    "<iframe>a</iframe><noembed>b</noembed><noframes>d</noframes><xmp><b>e</xmp>c",
    "<frameset><frame src='about:blank'></frameset><noframes>b</noframes>",
    "a<br>b<br/>c</br>d<P>e</P><DIV>f</DIV>g",
    "<table><tr><td>a<td>b<tr><th>c</table>d<table><caption>e</caption><tbody><tr><td>f</td></tr></table>",
    "<table hidden>a<tr><td>b</table><p>c",
    "<dl><dt>a<dd>b</dl><ul><li>c<li>d</ul>e<ol><li hidden>f<li>g</ol>",
    "<div><p>a<div>b</div><span>c</div>d<b>e<i>f</b>g</i>h",
    "<p>a\n  b\tc</p><pre>d\n  e</pre>f",
    "<a title='x > y' href=\"a>b\">c</a><b title=x'>d<b title='e>f'>g",
    "<fieldset><legend>a</legend>b</fieldset><details open><summary>c</summary>d</details>",
    "<title>a</title><textarea>b</textarea><p>c<button>d</button>",
    "a<plaintext>b<c>",
    "<script><!--<script></script>a</script><p>b",
    "3 < 5 and 7 > 6<p>a < b &lt;b&gt;",
]
# Markup whose visible text differs from the text in a browser, with the expected text and the reason.
OTHER = {
    "<select><option>April</select>c": ("c", "options are not part of an article"),
    "<noscript><p>Turn scripts on</p></noscript>c": ("c", "readers have scripts enabled"),
    "<ruby>ab<rt>kan</rt></ruby>c": ("abc", "a copy without the ruby reading is the same text"),
    "<details><summary>a</summary>b</details>": ("a b", "readers can open it"),
    "<p>b<math>y<mi>x</mi></math>": ("byx", "a browser shows only <mi> and similar elements, in italics"),
    "<p><b hidden>x</p>y</b>z": ("yz", "esdedup ends a hidden element where a browser does, or earlier"),
    "<frameset><p>a</frameset>": ("a", "plain text may look like a frameset"),
    "<three words '<!--'>a": ("<three words '<!--'>a", "without block-level tags, the text may be plain"),
}


def words(text: str) -> list[str]:
    return re.findall(r"\S+", text)


def test_visible_text_matches_a_browser(browser: Browser) -> None:
    page = browser.new_page(java_script_enabled=False)
    shown = {}
    for snippet in (*SAME, *OTHER):
        page.set_content(snippet)
        shown[snippet] = words(page.evaluate("document.body ? document.body.innerText : ''"))
    page.close()
    assert {each: words(visible_text(each)) for each in SAME} == {each: shown[each] for each in SAME}
    assert {each: words(visible_text(each)) for each in OTHER} == {
        each: words(OTHER[each][0]) for each in OTHER
    }
    # If a browser now shows the same text, move the snippet to SAME.
    assert [each for each in OTHER if shown[each] == words(OTHER[each][0])] == []

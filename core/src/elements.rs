//! Tracks which elements are open, and whether readers see their content. This module implements only the part of
//! "Tree construction" (html.spec.whatwg.org) that this requires. A misnested element ends where it does in a browser
//! or earlier, because formatting elements are not reopened and no element stays open after its parent.

use std::sync::LazyLock;

/// Properties of an element that follow from its name.
type Traits = u16;
/// The element begins and ends a line.
pub const BLOCK: Traits = 1;
/// The element's content is not markup.
pub const RAW: Traits = 2;
/// Readers do not see the element's content.
pub const HIDDEN: Traits = 4;
/// The element is a cell of a table.
pub const CELL: Traits = 8;
const ROW: Traits = 16; // a row of a table
const GROUP: Traits = 32; // a group of rows or columns, or a caption
const IN_TABLE: Traits = CELL | ROW | GROUP;
const VOID: Traits = 64;
// Line breaks in the element are kept.
const PREFORMATTED: Traits = 128;
// The element ends an open paragraph.
const ENDS_PARAGRAPH: Traits = 256;
// A tag inside the element cannot close an element outside it. Tags of table parts can, unless the element is a
// `TABLE_SCOPE`.
const SCOPE: Traits = 512;
const TABLE_SCOPE: Traits = 1024;
// A list item inside the element does not end a list item outside it.
const LIST: Traits = 2048;
// The element's tag closes open `svg` and `math` elements.
const BREAKS_OUT: Traits = 4096;
// The element is part of an `svg` or `math` element, but contains HTML.
const HTML_INSIDE: Traits = 8192;
const HEADING: Traits = 16384;
const TABLE: Traits = 32768;

const FLOW: Traits = BLOCK | ENDS_PARAGRAPH;
const ELEMENTS: [(&str, Traits); 21] = [
    ("p div center blockquote li dd dt", FLOW | BREAKS_OUT),
    ("h1 h2 h3 h4 h5 h6", FLOW | BREAKS_OUT | HEADING),
    ("ul ol dl menu", FLOW | BREAKS_OUT | LIST),
    ("pre listing", FLOW | BREAKS_OUT | PREFORMATTED),
    ("address article aside details dir fieldset figcaption figure footer form header hgroup", FLOW),
    ("main nav search section summary dialog", FLOW),
    ("html head body legend optgroup option frameset", BLOCK),
    ("table", FLOW | SCOPE | TABLE_SCOPE | BREAKS_OUT | TABLE),
    ("tbody thead tfoot caption colgroup", BLOCK | GROUP),
    ("tr", BLOCK | ROW),
    ("td th", SCOPE | CELL),
    ("template", SCOPE | TABLE_SCOPE | HIDDEN),
    ("marquee object applet button", SCOPE),
    ("select", SCOPE | HIDDEN),
    ("audio video datalist meter progress rp rt", HIDDEN),
    ("br hr", FLOW | VOID | BREAKS_OUT),
    ("area base basefont bgsound col embed frame img input keygen link meta param source track wbr", VOID),
    ("b big code em i nobr s small strike strong tt u span sub sup var ruby", BREAKS_OUT),
    ("script style iframe noembed noframes noscript title textarea", RAW | HIDDEN),
    ("xmp plaintext", FLOW | RAW | PREFORMATTED),
    ("a font rb rtc svg math text foreignobject desc metadata defs mi mo mn ms mtext annotation", 0),
];
// The maximum number of open elements in browsers; it also bounds the search for the element of a closing tag.
const MOST_OPEN: usize = 512;

fn key(name: &str) -> u128 {
    // The keys of all known names fit; the keys of longer names saturate.
    name.bytes().fold(0, |key, each| key.saturating_mul(256) | u128::from(each.to_ascii_lowercase()))
}

/// An element with a known name; all unknown elements have an empty name.
#[derive(Clone, Copy, Default)]
pub struct Element {
    /// The name in lower case.
    pub name: &'static str,
    traits: Traits,
}

impl Element {
    /// Returns the element with the given name.
    pub fn of(name: &str) -> Element {
        static KNOWN: LazyLock<Vec<(u128, Element)>> = LazyLock::new(|| {
            let named = |&(names, traits): &(&'static str, Traits)| {
                names.split(' ').map(move |name| (key(name), Element { name, traits }))
            };
            let mut known: Vec<_> = ELEMENTS.iter().flat_map(named).collect();
            known.sort_unstable_by_key(|each| each.0);
            known
        });
        let found = KNOWN.binary_search_by_key(&key(name), |each| each.0);
        found.map_or(Element::default(), |at| KNOWN[at].1)
    }

    /// Returns whether the element has any of the given traits.
    pub fn has(self, traits: Traits) -> bool {
        self.traits & traits != 0
    }

    /// Returns whether the element ends when `next` begins, if it is still open.
    fn ends_before(self, next: Element) -> bool {
        match self.name {
            "p" => next.has(ENDS_PARAGRAPH),
            "li" | "a" | "nobr" | "button" => next.name == self.name,
            "dd" | "dt" => matches!(next.name, "dd" | "dt"),
            "rt" | "rp" | "rb" => next.has(BLOCK) || matches!(next.name, "rt" | "rp" | "rb" | "rtc"),
            "select" => matches!(next.name, "select" | "input" | "textarea"),
            _ if self.has(CELL) => next.has(IN_TABLE),
            _ if self.has(ROW) => next.has(ROW | GROUP),
            _ if self.has(GROUP) => next.has(GROUP),
            _ if self.has(TABLE) => next.has(TABLE),
            _ => self.has(HEADING) && next.has(HEADING),
        }
    }
}

/// An opening or closing tag.
pub struct Tag {
    /// The element that the tag opens or closes.
    pub element: Element,
    /// Whether the tag's attributes hide the element.
    pub hides: bool,
    /// Whether the tag ends with `/>`.
    pub is_closed: bool,
}

#[derive(Clone, Copy, Default)]
struct Open {
    element: Element,
    // The `svg` or `math` that contains the element, by name; empty if there is none.
    root: &'static str,
    is_hidden: bool,
    is_preformatted: bool,
}

/// The open elements, starting with the outermost.
#[derive(Default)]
pub struct Elements {
    open: Vec<Open>,
    // Whether a form is open. Browsers ignore other forms until its closing tag.
    has_form: bool,
}

impl Elements {
    fn top(&self) -> Open {
        self.open.last().copied().unwrap_or_default()
    }

    /// Returns whether line breaks are kept at the current position.
    pub fn are_preformatted(&self) -> bool {
        self.top().is_preformatted
    }

    /// Returns whether text at the current position is hidden.
    pub fn are_hidden(&self) -> bool {
        self.top().is_hidden && !self.are_before_table()
    }

    // Browsers move text that is inside a table, but outside of its cells, to before the table.
    fn are_before_table(&self) -> bool {
        self.top().element.has(ROW | GROUP | TABLE)
    }

    /// Returns whether tags at the current position are parsed as foreign content (SVG or MathML).
    pub fn are_foreign(&self) -> bool {
        !self.top().root.is_empty() && !self.top().element.has(HTML_INSIDE)
    }

    /// Opens an element and closes the elements that end there. Returns the element with its traits at this position.
    pub fn open(&mut self, tag: &Tag, may_hide: bool) -> Element {
        let mut element = tag.element;
        if element.has(BREAKS_OUT) {
            self.break_out();
        }
        let is_foreign = self.are_foreign();
        if is_foreign {
            element.traits = match (self.top().root, element.name) {
                ("svg", "desc" | "title") => HTML_INSIDE | SCOPE | HIDDEN,
                ("svg", "foreignobject") | ("math", "mi" | "mo" | "mn" | "ms" | "mtext") => {
                    HTML_INSIDE | SCOPE
                }
                (_, "script" | "style" | "metadata" | "defs" | "annotation") => HIDDEN,
                _ => 0,
            };
        } else {
            // Inside a table, but outside of its cells, a form stays empty.
            let is_ignored = match element.name {
                "html" | "head" | "body" => true,
                "form" => std::mem::replace(&mut self.has_form, true) || self.are_before_table(),
                _ => element.has(IN_TABLE) && !self.open.iter().any(|each| each.element.has(TABLE)),
            };
            if is_ignored {
                element.traits &= BLOCK;
                return element;
            }
            let stops = match element.name {
                "li" | "dd" | "dt" => SCOPE | LIST,
                "select" => TABLE_SCOPE,
                _ if element.has(IN_TABLE) => TABLE_SCOPE,
                _ => SCOPE,
            };
            let until = self.open.iter().rposition(|each| each.element.has(stops)).unwrap_or(0);
            let ended = self.open[until..].iter().position(|each| each.element.ends_before(element));
            self.open.truncate(ended.map_or(self.open.len(), |at| until + at));
            if ended.is_some() && element.name == "select" {
                return element;
            }
        }
        if self.top().is_hidden && self.are_before_table() && !element.has(IN_TABLE | RAW | VOID) {
            let start = self.open.iter().rposition(|each| each.element.has(TABLE)).unwrap_or(0);
            self.open[start..].iter_mut().for_each(|each| each.is_hidden = false);
        }
        let top = self.top();
        // If nothing may be hidden, the content of `noscript` is markup.
        if !element.has(RAW) || (element.name == "noscript" && !may_hide) {
            let hides = may_hide && (element.has(HIDDEN) || (tag.hides && !is_foreign));
            element.traits = element.traits & !(HIDDEN | RAW) | if hides { HIDDEN } else { 0 };
        }
        if element.has(RAW | VOID) || self.open.len() == MOST_OPEN {
            return element;
        }
        let root = match element.name {
            "svg" | "math" => element.name,
            _ if is_foreign => top.root,
            _ => "",
        };
        if tag.is_closed && !root.is_empty() {
            return element;
        }
        self.open.push(Open {
            element,
            root,
            is_hidden: top.is_hidden || element.has(HIDDEN),
            is_preformatted: top.is_preformatted || element.has(PREFORMATTED),
        });
        element
    }

    /// Processes a closing tag: closes the element, and the elements in it, unless the tag has no effect here.
    pub fn close(&mut self, element: Element) {
        if matches!(element.name, "p" | "br") {
            self.break_out();
        }
        self.has_form &= element.name != "form";
        let stops = if element.has(IN_TABLE | TABLE_SCOPE) { TABLE_SCOPE } else { SCOPE };
        for at in (0..self.open.len()).rev() {
            let open = self.open[at].element;
            if open.name == element.name || (element.has(HEADING) && open.has(HEADING)) {
                return self.open.truncate(at);
            }
            if open.has(stops) {
                return;
            }
        }
    }

    fn break_out(&mut self) {
        while self.are_foreign() {
            self.open.pop();
        }
    }
}

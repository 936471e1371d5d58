//! Whether everybody can read and use a page: contrast of its texts, names of its controls.

use serde_json::{Value, json};

use crate::browser::Browser;

/// Texts that are seen whose contrast is below what WCAG AA asks for, with their contrast.
pub(crate) fn faint_texts(browser: &mut Browser) -> Value {
    browser.eval(FAINT_TEXTS)
}

/// What can be used and has no name that a screen reader could say.
pub(crate) fn nameless(browser: &mut Browser) -> Vec<String> {
    let tree = browser.ask("Accessibility.getFullAXTree", json!({}));
    let used = [
        "button",
        "link",
        "textbox",
        "searchbox",
        "combobox",
        "listbox",
        "slider",
        "checkbox",
        "tab",
        "image",
        "Canvas",
        "spinbutton",
        "region",
        "dialog",
        "table",
        "meter",
        "progressbar",
    ];
    let is_nameless = |node: &&Value| {
        node["ignored"] != json!(true)
            && node["role"]["value"].as_str().is_some_and(|role| used.contains(&role))
            && node["name"]["value"].as_str().is_none_or(|name| name.trim().is_empty())
    };
    let nodes = tree["nodes"].as_array().into_iter().flatten().filter(is_nameless);
    nodes.map(|node| format!("{} {}", node["role"]["value"], node["properties"])).collect()
}

/// Walks over the texts of the page, and of the editor in its shadow root.
const FAINT_TEXTS: &str = r#"(() => {
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = 1;
    const context = canvas.getContext('2d', { willReadFrequently: true });
    const rgba = (text) => { context.clearRect(0, 0, 1, 1); context.fillStyle = text; context.fillRect(0, 0, 1, 1); return [...context.getImageData(0, 0, 1, 1).data].map((v, i) => i === 3 ? v / 255 : v); };
    const over = (top, below) => top.slice(0, 3).map((v, i) => v * top[3] + below[i] * (1 - top[3]));
    const parent = (one) => one.parentElement ?? one.getRootNode().host ?? null;
    const paper = (one) => { const layers = []; for (; one; one = parent(one)) { const c = rgba(getComputedStyle(one).backgroundColor); if (c[3] > 0) { layers.push(c); if (c[3] === 1) break; } } return layers.reverse().reduce((below, top) => over(top, below), rgba('white').slice(0, 3)); };
    const light = (rgb) => { const [r, g, b] = rgb.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const found = new Set();
    const walk = (root) => {
        const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
        for (let text = texts.nextNode(); text; text = texts.nextNode()) {
            const one = text.parentElement;
            if (!one || !text.data.trim() || ['SCRIPT', 'STYLE', 'OPTION', 'DATALIST'].includes(one.tagName)) continue;
            const style = getComputedStyle(one);
            if (style.visibility === 'hidden' || !one.getClientRects().length || one.closest(':disabled')) continue;
            const below = paper(one), ink = over(rgba(style.color), below);
            const [a, b] = [light(ink), light(below)].sort((x, y) => y - x);
            const ratio = (a + 0.05) / (b + 0.05);
            const size = parseFloat(style.fontSize);
            const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
            if (ratio < least) found.add(`${ratio.toFixed(2)} ${one.tagName}.${one.className} "${text.data.trim().slice(0, 30)}"`);
        }
        root.querySelectorAll('*').forEach((one) => { if (one.shadowRoot) walk(one.shadowRoot); });
    };
    walk(document.body);
    return [...found].slice(0, 20);
})()"#;

// Small helpers to make and change elements. Nothing here turns a text into HTML.

export function byId(id) {
  return document.getElementById(id);
}

/** @param attributes a `class`, and others by their names; functions are listeners */
export function make(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') made.addEventListener(key, value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** Sets a text if it has changed, so that a selection, or what a screen reader reads, stays. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A copy of the only element of a template. */
export function fromTemplate(id) {
  return byId(id).content.firstElementChild.cloneNode(true);
}

/** Shows how full something is, and whether that is a lot. */
export function setBar(bar, part) {
  const share = Math.min(1, Math.max(0, part));
  bar.firstElementChild.style.width = `${share * 100}%`;
  bar.dataset.level = share >= 1 ? 'full' : share >= 0.8 ? 'high' : 'low';
}

/**
 * Gives a list one child for each item, in the order of the items, and keeps the children of items that stay.
 * @param nameOf tells the items apart
 * @param create an element for a new item
 * @param update fills an element
 */
export function keepList(parent, items, nameOf, create, update = () => undefined) {
  parent.kept ??= new Map();
  const before = parent.kept;
  const after = new Map();
  for (const item of items) {
    const name = nameOf(item);
    const element = before.get(name) ?? create(item);
    update(element, item);
    after.set(name, element);
  }
  for (const [name, element] of before) if (!after.has(name)) element.remove();
  parent.kept = after;
  const focused = document.activeElement;
  let next = parent.firstElementChild;
  for (const element of after.values()) {
    if (element === next) next = next.nextElementSibling;
    else parent.insertBefore(element, next);
  }
  // An element that is moved loses the focus.
  if (focused !== document.activeElement && parent.contains(focused)) focused.focus();
}

/** How many items of a long list are shown until somebody asks for all. */
const MOST_AT_FIRST = 10;

/**
 * Returns the first items of a list, or all once somebody has clicked on its button.
 * @param button is shown if there are more
 * @param again shows the list
 */
export function firstOf(items, button, again) {
  const isOpen = button.getAttribute('aria-expanded') === 'true';
  button.hidden = items.length <= MOST_AT_FIRST;
  setText(button, isOpen ? `Show ${MOST_AT_FIRST} only` : `Show all ${items.length}`);
  button.onclick = () => {
    button.setAttribute('aria-expanded', String(!isOpen));
    again();
  };
  return isOpen ? items : items.slice(0, MOST_AT_FIRST);
}

// The address has the key that is shown in detail, so that it can be linked to, and Back returns to the list.

const START = '#key=';

/** The key in the address, or undefined. */
export function keyInAddress() {
  const { hash } = location;
  if (!hash.startsWith(START)) return undefined;
  try {
    return decodeURIComponent(hash.slice(START.length));
  } catch {
    return undefined;
  }
}

export function addressOf(key) {
  return START + encodeURIComponent(key.toWellFormed());
}

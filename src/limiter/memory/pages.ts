/** The number of items in a page. */
const PAGE_SIZE = 50;

/**
 * Reads something of each key, in pages.
 * @param read returns undefined of a key that is left out
 */
// eslint-disable-next-line @typescript-eslint/require-await -- its caller reads pages as they come, from Redis too
export async function* inPages<Item>(
  keys: Iterable<string>,
  read: (key: string) => Item | undefined,
): AsyncIterable<readonly Item[]> {
  let page: Item[] = [];
  for (const key of keys) {
    const item = read(key);
    if (item !== undefined) page.push(item);
    if (page.length < PAGE_SIZE) continue;
    yield page;
    page = [];
  }
  yield page;
}

/** Groups items by what `of` says of them, in the order of their first items. */
export function groupBy<Item>(items: readonly Item[], of: (item: Item) => unknown): Item[][] {
  const groups = new Map<unknown, Item[]>();
  for (const item of items) {
    const group = of(item);
    const others = groups.get(group);
    if (others) others.push(item);
    else groups.set(group, [item]);
  }
  return [...groups.values()];
}

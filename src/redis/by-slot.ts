/** Groups items whose names are in the same slot, so that one call can touch them. */
export function groupBySlot<Item>(
  items: readonly Item[],
  slotOf: (item: Item) => number,
): Item[][] {
  const bySlot = new Map<number, Item[]>();
  for (const item of items) {
    const slot = slotOf(item);
    const others = bySlot.get(slot);
    if (others) others.push(item);
    else bySlot.set(slot, [item]);
  }
  return [...bySlot.values()];
}

/** Puts together what one call can touch together: the items whose names are in the same slot. */
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

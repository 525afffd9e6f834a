/**
 * Makes a call for each key, a number of `times`, with some at once: one round of the keys after the other.
 * @param {(key: number) => Promise<void>} call
 */
export async function inTurn({ keys, times, atOnce }, call) {
  for (let round = 0; round < times; round += 1) {
    for (let first = 0; first < keys; first += atOnce) {
      await Promise.all(Array.from({ length: atOnce }, (_, i) => call(first + i)));
    }
  }
}

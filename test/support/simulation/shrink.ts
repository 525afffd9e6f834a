/**
 * The steps that are needed for a failure: leaves out chunks of them, then smaller ones, for as long as it still
 * fails without. By Zeller's delta debugging: https://www.st.cs.uni-saarland.de/papers/tse2002/
 * @param fails whether fewer steps fail in the same way
 * @param mostRuns after this many runs the steps that are left are good enough
 */
export async function shrink(
  steps: readonly string[],
  fails: (steps: readonly string[]) => Promise<boolean>,
  mostRuns = 2000,
): Promise<readonly string[]> {
  let needed = steps;
  let runs = 0;
  for (let size = Math.ceil(steps.length / 2); size >= 1;) {
    let isShorter = false;
    for (let first = 0; first < needed.length && runs < mostRuns;) {
      const fewer = [...needed.slice(0, first), ...needed.slice(first + size)];
      runs += 1;
      if (await fails(fewer)) {
        needed = fewer;
        isShorter = true;
      } else {
        first += size;
      }
    }
    if (size === 1 && !isShorter) break;
    if (size > 1) size = Math.ceil(size / 2);
    if (runs >= mostRuns) break;
  }
  return needed;
}

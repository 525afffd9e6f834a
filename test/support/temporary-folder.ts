import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder for the files of one test file, removed after its tests. */
export function useTemporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'));
  afterAll(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

/** The port on which a service serves, by its own log. @throws Error where it ends before */
export function servingPort(child: ChildProcess & { readonly stdout: Readable }): Promise<number> {
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const { msg, port } = JSON.parse(line) as { msg: string; port: number };
      if (msg === 'serving') resolve(port);
    });
    child.once('exit', (code) => {
      reject(new Error(`it ended with ${String(code)}`));
    });
  });
}

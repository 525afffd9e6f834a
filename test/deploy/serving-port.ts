import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

/** The port of a service, from its log. @throws Error if the service ends before it serves */
export function servingPort(child: ChildProcess & { readonly stdout: Readable }): Promise<number> {
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const { msg, port } = JSON.parse(line) as { msg: string; port: number };
      if (msg === 'serving') resolve(port);
    });
    child.once('exit', (code) => {
      reject(new Error(`the service ended with ${String(code)}`));
    });
  });
}

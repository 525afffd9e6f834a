import { readText } from '../repository-files.js';

/**
 * The block of YAML in docs/envoy.md that has this text.
 * @param indentation of the place in the file that gets the block
 */
export function yamlOfPage(text: string, indentation: number): string {
  const blocks = [...readText('docs/envoy.md').matchAll(/^( *)```yaml\n(.*?)^\1```$/gms)];
  const found = blocks.filter(([, , block]) => block!.includes(text));
  if (found.length !== 1) throw new Error(`${found.length} blocks have ${text}`);
  const [, indented, block] = found[0]!;
  return block!.replace(new RegExp(`^${indented!}`, 'gm'), ' '.repeat(indentation));
}

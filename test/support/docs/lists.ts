import { readPage } from './pages.js';

/** The items of all lists in a section of a page, without their line breaks. The section ends at the next heading. */
export function listItems(page: string, heading: string): string[] {
  const [, section] = readPage(page).split(`\n${heading}\n`);
  if (section === undefined) throw new Error(`${page} has no heading ${heading}`);
  const [text = ''] = section.split(/\n#+ /);
  return text
    .split(/\n\n|\n(?=- )/)
    .filter((part) => part.startsWith('- '))
    .map((part) => part.slice(2).replaceAll(/\s+/g, ' '));
}

// `npm run docs`: builds the site of the pages in docs/site/dist, with search. `npm run docs -- preview` also serves it.
import { installIn } from './lib/prepare.mjs';
import { run, stop } from './lib/run.mjs';

const SITE = 'docs/site';

const [asked, ...others] = process.argv.slice(2);
if (others.length > 0 || ![undefined, 'preview'].includes(asked)) {
  stop('Usage: npm run docs, or npm run docs -- preview');
}
installIn(SITE);
run('npm', ['run', '--silent', 'build', '--prefix', SITE]);
if (asked === 'preview') run('npm', ['run', '--silent', 'preview', '--prefix', SITE]);

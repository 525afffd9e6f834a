import { describePages, OTHER_PAGES } from '../support/docs/run-pages.js';

// test/service/docs/shell-blocks.test.ts runs the pages about rules and parameters.
describePages(OTHER_PAGES);

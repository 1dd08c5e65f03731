/** How a process of ours is started under Node.js. */

/** The first line of a program that is shipped. */
export const PROGRAM_FIRST_LINE = '#!/usr/bin/env node';

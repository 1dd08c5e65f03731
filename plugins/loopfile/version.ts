/** The version that the driver says it has: set by build.ts from package.json; a run from source says so. */

declare const MOORING_VERSION: string | undefined;

export const VENDOR_VERSION: string = typeof MOORING_VERSION === 'string' ? MOORING_VERSION : '0.0.0-source';

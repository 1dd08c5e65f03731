/** Strings that went through their parser. */

declare const brand: unique symbol;

/** A string that went through its parser. */
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };

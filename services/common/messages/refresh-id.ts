const lowerCaseUuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Whether the text is a UUID as ingress writes them: one refresh has one spelling, so texts can be compared and used as keys. */
export function isRefreshId(text: string): boolean {
  return lowerCaseUuid.test(text);
}

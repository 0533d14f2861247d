// The page of an atlas: DataTables sorts, searches and pages its tables, which are whole without it.
document.head.append(Object.assign(document.createElement("link"), {
  rel: "stylesheet", href: document.currentScript.src.replace(/atlas\.js.*$/, "datatables.css"),
}));
for (const element of document.querySelectorAll(".ffi-sortable")) {
  const rows = element.tBodies[0].rows.length;
  const [topEnd, bottomStart, bottomEnd] = rows > 25 ? ["search", "pageLength", "paging"] : [null, null, null];
  new DataTable(element, {
    autoWidth: false, order: [], pageLength: 25, lengthMenu: [25, 100, { label: "all", value: -1 }],
    layout: { topStart: null, topEnd, bottomStart, bottomEnd },
  });
}

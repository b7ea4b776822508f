-- lsp.lua - neovim as a client of `vwn lsp`: what a user of it sees, with the package of grammar/editors.
--
-- In:  VWN, the program; model.vwn in the current folder, other.vwn, which it imports.   Out: status 0, or the step that failed.
local function step(name, fine, seen)
  if not fine then
    io.stderr:write("failed: " .. name .. (seen and (": " .. vim.inspect(seen)) or "") .. "\n")
    vim.cmd("cquit 1")
  end
end
local function wait(name, condition)
  step(name, vim.wait(60000, condition, 20), vim.diagnostic.get(0))
end

vim.cmd("edit model.vwn")
step("the type of the file", vim.bo.filetype == "vwn", vim.bo.filetype)
wait("the server is attached", function() return #vim.lsp.buf_get_clients(0) == 1 end)
local client = vim.lsp.buf_get_clients(0)[next(vim.lsp.buf_get_clients(0))]

-- messages
wait("a message", function() return #vim.diagnostic.get(0) == 1 end)
local said = vim.diagnostic.get(0)[1]
step("its place", said.lnum == 4 and said.col == 12 and said.severity == vim.diagnostic.severity.ERROR, said)
step("its text", said.message:find("hidde", 1, true) ~= nil, said.message)

local function ask(method, line, column, more)
  local params = { textDocument = vim.lsp.util.make_text_document_params(), position = { line = line, character = column } }
  local answers = vim.lsp.buf_request_sync(0, method, vim.tbl_extend("force", params, more or {}), 60000)
  for _, answer in pairs(answers or {}) do
    step(method .. " has no error", answer.error == nil or answer.error == vim.NIL, answer.error)
    return answer.result
  end
end

-- a mend
local actions = ask("textDocument/codeAction", 4, 12, { range = { start = { line = 4, character = 12 }, ["end"] = { line = 4, character = 12 } }, context = { diagnostics = {} } })
step("a mend", actions and #actions >= 1, actions)
vim.lsp.util.apply_workspace_edit(actions[1].edit, client.offset_encoding)
wait("no message once it is mended", function() return #vim.diagnostic.get(0) == 0 end)
step("the mended line", vim.fn.getline(5):find("hidden = D", 1, true) ~= nil, vim.fn.getline(5))

-- hover, through neovim's own function, which opens a window
local hover = ask("textDocument/hover", 3, 4)
step("hover", hover.contents.value:find("D = 32", 1, true) ~= nil, hover)
vim.api.nvim_win_set_cursor(0, { 4, 4 })
vim.lsp.buf.hover()
wait("the window of hover", function() return #vim.api.nvim_list_wins() == 2 end)
vim.cmd("only")

-- completion
local offered = ask("textDocument/completion", 3, 8)
local labels = {}
for _, item in ipairs(offered.items) do labels[item.label] = item end
step("completion", labels.softmax and labels.ffn and labels.ffn.documentation, vim.tbl_keys(labels))

-- definitions: in the file, and in the one that it imports
vim.api.nvim_win_set_cursor(0, { 5, 21 })
vim.lsp.buf.definition()
wait("the definition", function() return vim.api.nvim_win_get_cursor(0)[1] == 4 end)
local place = ask("textDocument/definition", 3, 18)
step("a definition in another file", place.uri:find("other.vwn", 1, true) and place.range.start.line == 0, place)

-- another name
vim.api.nvim_win_set_cursor(0, { 4, 4 })
vim.lsp.buf.rename("Wide")
wait("the new name", function() return vim.fn.getline(4):find("let Wide = ", 1, true) ~= nil end)
step("where it is used", vim.fn.getline(5):find("hidden = Wide", 1, true) ~= nil, vim.fn.getline(5))

-- formatting, then the text that is typed
vim.api.nvim_buf_set_lines(0, -1, -1, false, { "let   z=1" })
local edits = ask("textDocument/formatting", 0, 0, { options = { tabSize = 2, insertSpaces = true } })
vim.lsp.util.apply_text_edits(edits, vim.api.nvim_get_current_buf(), client.offset_encoding)
step("formatting", vim.fn.getline("$"):find("^let z ") ~= nil, vim.fn.getline("$"))
vim.api.nvim_buf_set_text(0, 3, 0, 3, 0, { "# \u{e4}\u{20ac}\u{1f600}" , "" })
vim.api.nvim_buf_set_lines(0, -1, -1, false, { "check \"\u{1f600}\" == nobody" })
wait("a message behind characters of four bytes", function() return #vim.diagnostic.get(0) == 1 end)
local last = vim.fn.getline("$")
said = vim.diagnostic.get(0)[1]
step("its column", last:sub(said.col + 1, said.end_col) == "nobody", said)

client.stop()
wait("the end of the server", function() return client.is_stopped() end)
print("neovim was answered")
vim.cmd("qall!")

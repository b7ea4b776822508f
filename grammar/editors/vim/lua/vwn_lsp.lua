-- vwn_lsp.lua - starts `vwn lsp` for a buffer of neovim 0.7 or later: require("vwn_lsp").start({ cmd = { "vwn", "lsp" } })
local M = {}

function M.start(options)
  options = options or {}
  local buffer = vim.api.nvim_get_current_buf()
  local config = {
    name = "vwn",
    cmd = options.cmd or { "vwn", "lsp" },
    root_dir = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(buffer), ":p:h"),
    on_attach = options.on_attach,
    capabilities = options.capabilities,
  }
  if vim.lsp.start then -- 0.8
    return vim.lsp.start(config, { bufnr = buffer })
  end
  for _, client in pairs(vim.lsp.get_active_clients()) do
    if client.name == "vwn" and client.config.root_dir == config.root_dir then
      vim.lsp.buf_attach_client(buffer, client.id)
      return client.id
    end
  end
  local id = vim.lsp.start_client(config)
  if id then
    vim.lsp.buf_attach_client(buffer, id)
  end
  return id
end

return M

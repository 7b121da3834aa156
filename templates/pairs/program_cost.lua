-- program_cost: what a problem's score program costs: registers of a thread; of a pair instructions, and of these those on the
-- special-function unit; arrays that are read ahead. ahead: of kernels that read them so; back: of the backward pass.

local none = { regs = 0, regs_ahead = 0, regs_back = 0, issue = 0, issue_ahead = 0, issue_back = 0, exps = 0, exps_back = 0, arrays = {} }

return function(p) return p.score or none end
